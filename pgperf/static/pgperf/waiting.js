/* Shows a worker's answer in the part of the page that waits for it, as soon as it is there. */
"use strict";
(function () {
    const EVERY_MS = 2000;
    const ANSWERS = [200, 403, 404];
    const shown = document.querySelector("[id][data-waiting]");
    const isWaiting = () => shown && "waiting" in shown.dataset;

    /* Parsed by the request: Trusted Types would refuse a parser of text. */
    function load(address, loaded) {
        const request = new XMLHttpRequest();
        request.open("GET", address);
        request.responseType = "document";
        request.addEventListener("loadend", () => loaded(request.response, ANSWERS.includes(request.status)));
        request.send();
    }

    function refresh() {
        load(shown.dataset.waiting, (page, isAnswer) => {
            const newer = page && page.getElementById(shown.id);
            if (newer && !("waiting" in newer.dataset)) {
                show(page, newer);
            }
            if (newer || !isAnswer) {
                follow(); // the next try may succeed; a page without that part, such as the login, stays so
            }
        });
    }

    function show(page, newer) {
        delete shown.dataset.waiting;
        shown.replaceChildren(...document.importNode(newer, true).childNodes);
        const button = document.querySelector("button[name=look]");
        const again = page.querySelector("button[name=look]");
        if (button && again) {
            button.disabled = again.disabled;
        }
    }

    function follow() {
        if (isWaiting()) {
            setTimeout(refresh, EVERY_MS);
        }
    }
    follow();
})();
