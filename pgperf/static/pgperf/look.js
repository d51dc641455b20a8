/* Shows a worker's look at its machine as soon as there is one. */
"use strict";
(function () {
    const EVERY_MS = 2000;
    const shown = document.getElementById("pgperf-outlook");
    const isWaiting = () => shown && "waiting" in shown.dataset;

    async function refresh() {
        try {
            const answer = await fetch(shown.dataset.waiting, {credentials: "same-origin", redirect: "error"});
            const page = new DOMParser().parseFromString(await answer.text(), "text/html");
            const newer = page.getElementById("pgperf-outlook");
            if (answer.ok && newer && !("waiting" in newer.dataset)) {
                show(page, newer);
            }
        } catch {
            // the next try may succeed
        }
        follow();
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
