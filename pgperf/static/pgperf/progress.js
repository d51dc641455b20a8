/* Polls a run every two seconds while the page is visible, and loads the results when the run ends. */
"use strict";
(function () {
    const box = document.getElementById("pgperf-progress");
    if (!box) {
        return;
    }
    const POLL_MS = 2000;
    const part = (name) => box.querySelector("[data-part=" + name + "]");
    let timer = null;
    let polling = false;

    function show(progress) {
        part("bar").value = progress.progress;
        part("percent").textContent = Math.round(progress.progress * 100) + " %";
        part("message").textContent = progress.message;
        part("hint").textContent = progress.hint;
        part("hint").hidden = !progress.hint || !progress.workers;
        document.getElementById("pgperf-no-worker").hidden = progress.workers > 0 || progress.status !== "queued";
        document.querySelectorAll("[data-part=status]").forEach((badge) => {
            badge.textContent = progress.status_text;
            badge.className = "pgperf-badge " + progress.status;
        });
    }

    function showTrouble(visible) {
        part("trouble").hidden = !visible;
    }

    async function poll() {
        const reply = await fetch(box.dataset.url, {headers: {Accept: "application/json"}, redirect: "error"});
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
            showTrouble(false);
            show(progress);
            if (progress.terminal) {
                window.location.reload();
                return;
            }
        } catch {
            showTrouble(true);
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
})();
