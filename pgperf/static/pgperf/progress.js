/* Polls runs every two seconds while the page is visible: the run of a run's page, and those of a dashboard with an
   address. Loads the page again when a run ends, and a dashboard when a run changes its status, unless that would
   discard what somebody typed. */
"use strict";
(function () {
    const POLL_MS = 2000;
    /* The session, the permission or the run is gone. */
    const isRefusal = (reply) => reply.type === "opaqueredirect" || [403, 404].includes(reply.status);
    const isChanged = (area) => area.value !== area.defaultValue || area.closest("[data-unsaved]");
    const isTyping = () => [...document.querySelectorAll("textarea")].some(isChanged);

    function track(box) {
        const part = (name) => box.querySelector("[data-part=" + name + "]");
        const onDashboard = box.dataset.status !== undefined;
        const reloaded = "pgperf.reloaded " + box.dataset.url;
        let timer = null;
        let polling = false;

        function showText(name, text) {
            const found = part(name);
            if (found) {
                found.textContent = text;
            }
        }

        function show(progress) {
            const bar = part("bar");
            if (bar) {
                bar.value = progress.progress;
            }
            showText("percent", Math.round(progress.progress * 100) + " %");
            showText("message", progress.message);
            if (!onDashboard) {
                showOnRunPage(progress);
            }
        }

        function showOnRunPage(progress) {
            showText("hint", progress.hint);
            part("hint").hidden = !progress.hint || progress.needs_worker;
            document.getElementById("pgperf-no-worker").hidden = !progress.needs_worker;
            document.querySelectorAll("[data-part=status]").forEach((badge) => {
                badge.textContent = progress.status_text;
                badge.className = "pgperf-badge " + progress.status;
            });
        }

        function showPart(name, visible) {
            const found = part(name);
            if (found) {
                found.hidden = !visible;
            }
        }

        function end() {
            if (isTyping()) {
                showPart("ended", true);
            } else {
                window.location.reload();
            }
        }

        /* The page says why, such as by a login. If it did not, another time will not either. */
        function refuse() {
            if (isTyping()) {
                showPart("refused", true);
            } else if (sessionStorage.getItem(reloaded)) {
                throw new Error("refused");
            } else {
                sessionStorage.setItem(reloaded, "1");
                window.location.reload();
            }
        }

        /* Null if the site refuses. */
        async function poll() {
            const reply = await fetch(box.dataset.url, {headers: {Accept: "application/json"}, redirect: "manual"});
            if (isRefusal(reply)) {
                return null;
            }
            if (!reply.ok) {
                throw new Error("HTTP " + reply.status);
            }
            return reply.json();
        }

        async function follow() {
            timer = null;
            polling = true;
            try {
                const progress = await poll();
                if (progress === null) {
                    refuse();
                    return;
                }
                sessionStorage.removeItem(reloaded);
                showPart("refused", false);
                showPart("trouble", false);
                show(progress);
                if (progress.terminal || (onDashboard && progress.status !== box.dataset.status)) {
                    end();
                    return;
                }
            } catch {
                showPart("trouble", true);
            } finally {
                polling = false;
            }
            schedule();
        }

        function schedule() {
            if (!document.hidden && timer === null) {
                timer = setTimeout(follow, POLL_MS);
            }
        }

        document.addEventListener("visibilitychange", () => {
            clearTimeout(timer);
            timer = null;
            if (!document.hidden && !polling) {
                follow();
            }
        });
        schedule();
    }

    document.querySelectorAll(".pgperf-progress[data-url]").forEach(track);
})();
