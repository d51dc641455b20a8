/* Updates the preview when the database changes, lets a refused run be tried with another length or time budget,
   disables the buttons after a click, and makes a new token when the browser shows the page again as it was left:
   the used one would find the run that it has started. */
"use strict";
(function () {
    const form = document.getElementById("pgperf-start");
    if (!form) return; // there is no database
    const database = form.querySelector("[name=database]");
    const update = document.getElementById("pgperf-update");

    function newToken() {
        const bytes = crypto.getRandomValues(new Uint8Array(16));
        return Array.from(bytes, (byte) => byte.toString(16).padStart(2, "0")).join("");
    }

    const environments = () => form.querySelectorAll("[name=environments]");
    if (update && database.tagName === "SELECT") {
        if (!environments().length) update.remove();
        database.addEventListener("change", () => {
            const chosen = form.querySelector("[name=length]:checked");
            const query = new URLSearchParams({database: database.value, length: chosen ? chosen.value : "full"});
            const budget = form.querySelector("[name=budget_s]");
            if (budget && budget.value) query.set("budget_s", budget.value);
            environments().forEach((box) => box.checked && query.append("environments", box.value));
            window.location.assign(window.location.pathname + "?" + query);
        });
    }
    form.addEventListener("input", (event) => {
        if (["length", "budget_s", "environments"].includes(event.target.name)) form.querySelector(".default").disabled = false;
    });
    window.addEventListener("pageshow", (event) => {
        if (event.persisted) form.querySelector("[name=token]").value = newToken();
    });
    form.addEventListener("submit", () => {
        const open = form.querySelectorAll("[type=submit]:enabled");
        setTimeout(() => open.forEach((button) => (button.disabled = true)));
        window.addEventListener("pageshow", () => open.forEach((button) => (button.disabled = false)));
    });
})();
