/* Updates the preview when the database changes, and disables the buttons after a click. */
"use strict";
(function () {
    const form = document.getElementById("pgperf-start");
    if (!form) return; // there is no database
    const database = form.querySelector("[name=database]");
    const update = document.getElementById("pgperf-update");

    if (update && database.tagName === "SELECT") {
        update.remove();
        database.addEventListener("change", () => {
            const chosen = form.querySelector("[name=length]:checked");
            const query = new URLSearchParams({database: database.value, length: chosen ? chosen.value : "full"});
            const budget = form.querySelector("[name=budget_s]");
            if (budget && budget.value) query.set("budget_s", budget.value);
            window.location.assign(window.location.pathname + "?" + query);
        });
    }
    form.addEventListener("submit", () => {
        const open = form.querySelectorAll("[type=submit]:enabled");
        setTimeout(() => open.forEach((button) => (button.disabled = true)));
        window.addEventListener("pageshow", () => open.forEach((button) => (button.disabled = false)));
    });
})();
