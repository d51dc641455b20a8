/* Closes an open menu (details.pgperf-menu) by the Escape key, and by a click or the focus beside it. */
"use strict";
(function () {
    const menus = () => document.querySelectorAll("details.pgperf-menu[open]");

    function closeBeside(event) {
        menus().forEach((menu) => { menu.open = menu.contains(event.target); });
    }

    document.addEventListener("click", closeBeside);
    document.addEventListener("focusin", closeBeside);
    document.addEventListener("keydown", (event) => {
        if (event.key === "Escape") {
            menus().forEach((menu) => {
                menu.open = false;
                menu.querySelector("summary").focus();
            });
        }
    });
})();
