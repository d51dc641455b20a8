/* The boxes of routes follow the choice of database, and the server's estimate of a run follows the form. */
"use strict";
(function () {
    const WAIT_MS = 300;
    const NONE = {text: "", problem: false};
    const estimate = document.getElementById("pgperf-estimate");
    const database = document.querySelector("select[name=database], input[name=database]");
    const groups = [...document.querySelectorAll(".pgperf-routes .of-database")];
    const boxes = (parent) => [...parent.querySelectorAll("input[type=checkbox]")];
    const chosen = () => groups.find((group) => group.dataset.database === (database ? database.value : ""));

    /* A box that is hidden is not sent. Ticked routes that the database lacks stay in sight. */
    function showRoutes() {
        const own = chosen();
        const names = own ? boxes(own).map((box) => box.value) : [];
        for (const group of groups) {
            for (const box of boxes(group)) {
                const shown = !own || group === own || (box.checked && !names.includes(box.value));
                box.disabled = !shown;
                box.closest("label").hidden = !shown;
            }
            group.hidden = boxes(group).every((box) => box.disabled);
        }
    }

    function tick(name, value) {
        groups.flatMap(boxes).filter((box) => box.value === name).forEach((box) => (box.checked = value));
    }

    /* Another database: its own routes only, and one of them at least. */
    function changeDatabase() {
        const own = chosen();
        if (own) {
            const names = boxes(own).map((box) => box.value);
            groups.flatMap(boxes).filter((box) => !names.includes(box.value)).forEach((box) => (box.checked = false));
            if (names.length && !boxes(own).some((box) => box.checked)) {
                tick(names[0], true);
            }
        }
        showRoutes();
    }

    function fields(form) {
        const given = new URLSearchParams();
        for (const [name, value] of new FormData(form)) {
            const known = typeof value === "string" && name !== "description";
            if (known && value !== "") {
                given.append(name, value);
            }
        }
        return given;
    }

    function follow(form) {
        let timer = null;
        let asked = 0;

        async function answer() {
            const sent = {method: "POST", body: fields(form), headers: {Accept: "application/json"}, redirect: "error"};
            try {
                const reply = await fetch(estimate.dataset.url, sent);
                return reply.ok ? await reply.json() : NONE;
            } catch {
                return NONE;
            }
        }

        /* Without an answer there is none: the one before is of another form. */
        async function ask() {
            const own = (asked += 1);
            const found = await answer();
            if (own === asked) {
                estimate.textContent = found.text;
                estimate.classList.toggle("warning", found.problem);
                estimate.hidden = !found.text;
            }
        }

        const later = () => {
            clearTimeout(timer);
            timer = setTimeout(ask, WAIT_MS);
        };
        form.addEventListener("input", later);
        form.addEventListener("change", later);
        ask();
    }

    groups.forEach((group) => group.addEventListener("change", (event) => tick(event.target.value, event.target.checked)));
    if (database) {
        database.addEventListener("change", changeDatabase);
    }
    showRoutes();
    if (estimate) {
        follow(estimate.closest("form"));
    }
})();
