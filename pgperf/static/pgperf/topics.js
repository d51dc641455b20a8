/* Shows one topic of a run's page at a time: the one that the fragment of the address is in. Without scripts all are shown. */
"use strict";
(function () {
    window.pgperf = window.pgperf || {};
    const root = document.documentElement;

    function target() {
        try {
            return document.getElementById(decodeURIComponent(window.location.hash.slice(1)));
        } catch {
            return null; // no valid encoding
        }
    }

    /* charts.js has it where Chart.js is there. */
    const draw = (part) => window.pgperf.drawShown && window.pgperf.drawShown(part);

    /* The topic of an element, all of them for "Everything", and those shown for what is outside, such as a skip link's. */
    function topicsOf(element) {
        const all = [...document.querySelectorAll(".pgperf-topic")];
        const own = element && element.closest(".pgperf-topic");
        if (own) {
            return [own];
        }
        if (element && element.id === "topic-all") {
            return all;
        }
        return element ? all.filter((each) => each.classList.contains("current")) : all.slice(0, 1);
    }

    function show(element) {
        const shown = topicsOf(element);
        const name = shown.length > 1 ? "topic-all" : shown[0].id;
        document.querySelectorAll(".pgperf-topic").forEach((each) => each.classList.toggle("current", shown.includes(each)));
        document.querySelectorAll(".pgperf-topics a").forEach((link) => {
            if (link.hash === "#" + name) {
                link.setAttribute("aria-current", "true");
            } else {
                link.removeAttribute("aria-current");
            }
        });
        unfold(element);
        shown.forEach((topic) => draw(topic));
    }

    /* Opens the folds that an element is in. */
    function unfold(element) {
        for (let each = element; each; each = each.parentElement) {
            if (each.tagName === "DETAILS") {
                each.open = true;
            }
        }
    }

    /* The browser could not scroll to what was hidden. */
    function follow() {
        const element = target();
        show(element);
        if (element) {
            element.scrollIntoView();
        }
    }

    /* A large run's page comes with its first topic. Parsed by the request: Trusted Types would refuse a parser of text. */
    function loadOthers(link) {
        const request = new XMLHttpRequest();
        request.open("GET", link.dataset.otherTopics);
        request.responseType = "document";
        request.addEventListener("load", () => request.status === 200 && addOthers(request.response, link));
        request.send();
    }

    function addOthers(page, link) {
        const links = page ? page.querySelectorAll(".pgperf-topics li") : [];
        const others = page ? [...page.querySelectorAll(".pgperf-topic")] : [];
        if (others.length) { // none on another page, such as the login
            others.forEach((part) => window.pgperf.prepareCharts && window.pgperf.prepareCharts(part));
            document.getElementById("topic-all").append(...others);
            link.closest("li").replaceWith(...links);
            if (others.some((part) => part.contains(target()))) {
                follow();
            } else {
                show(target()); // the reader may have scrolled since
            }
        }
    }

    let folded = [];

    function showAll() {
        root.classList.remove("pgperf-one-topic");
        folded = [...document.querySelectorAll(".pgperf-topic details:not([open]), details.pgperf-note:not([open])")];
        folded.forEach((each) => { each.open = true; });
        draw(document);
    }

    function showOne() {
        folded.forEach((each) => { each.open = false; });
        root.classList.add("pgperf-one-topic");
    }

    /* Before the page is drawn first. */
    root.classList.add("pgperf-one-topic");
    document.addEventListener("DOMContentLoaded", () => {
        if (document.querySelector(".pgperf-topic")) {
            follow();
            window.addEventListener("hashchange", follow);
            window.addEventListener("beforeprint", showAll);
            window.addEventListener("afterprint", showOne);
            document.querySelectorAll("a[data-other-topics]").forEach(loadOthers);
        }
    });
})();
