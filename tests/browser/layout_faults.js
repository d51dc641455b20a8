/* The faults of a page's layout, as sentences: texts that overlap, boxes beyond their container,
   content beyond the window. What a box with a scroll bar of its own hides is no fault. */
() => {
    const TOLERANCE = 1.5; // px: rounding, and the overhang of glyphs
    const faults = [];
    const name = (element) => {
        const id = element.id ? `#${element.id}` : [...element.classList].map((each) => `.${each}`).join("");
        return `${element.tagName.toLowerCase()}${id}`;
    };
    const isShown = (element) => element.checkVisibility({ visibilityProperty: true, opacityProperty: true });
    const isHiddenByClip = (element) => element.closest(".visually-hidden, .skip-to-content-link") !== null;
    const scrolls = (element) => ["auto", "scroll", "hidden"].includes(getComputedStyle(element).overflowX);
    const scroller = (element) => {
        for (let each = element.parentElement; each; each = each.parentElement) {
            if (each !== document.documentElement && each !== document.body && scrolls(each)) return each;
        }
        return null;
    };
    const parts = (element, rect) => {
        const box = scroller(element)?.getBoundingClientRect();
        if (!box) return rect;
        return { left: Math.max(rect.left, box.left), right: Math.min(rect.right, box.right),
                 top: Math.max(rect.top, box.top), bottom: Math.min(rect.bottom, box.bottom) };
    };

    // Texts and controls: each has its place alone.
    const pieces = [];
    const walker = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
    for (let node = walker.nextNode(); node; node = walker.nextNode()) {
        const element = node.parentElement;
        if (!node.data.trim() || !isShown(element) || isHiddenByClip(element) || element.closest("select, svg, noscript, script, style")) continue;
        const range = document.createRange();
        range.selectNodeContents(node);
        for (const rect of range.getClientRects()) pieces.push({ node, element, text: node.data.trim().slice(0, 40), rect: parts(element, rect) });
    }
    for (const element of document.querySelectorAll("#content :is(input, select, textarea, button, a.button)")) {
        if (!isShown(element) || element.type === "hidden" || isHiddenByClip(element)) continue;
        pieces.push({ node: element, element, text: name(element), rect: parts(element, element.getBoundingClientRect()) });
    }
    const holds = (one, other) => one.node === other.node || one.node.contains(other.node) || other.node.contains(one.node);
    for (let i = 0; i < pieces.length; i += 1) {
        const one = pieces[i];
        for (let j = i + 1; j < pieces.length; j += 1) {
            const other = pieces[j];
            const wide = Math.min(one.rect.right, other.rect.right) - Math.max(one.rect.left, other.rect.left);
            const high = Math.min(one.rect.bottom, other.rect.bottom) - Math.max(one.rect.top, other.rect.top);
            // Lines of text may touch: their boxes are higher than their letters.
            if (wide > TOLERANCE && high > 4 && !holds(one, other)) faults.push(`"${one.text}" overlaps "${other.text}"`);
        }
    }

    // The window: no content beyond its edges, and none sticks to them.
    const width = document.documentElement.clientWidth;
    if (document.documentElement.scrollWidth > width) faults.push(`the page is ${document.documentElement.scrollWidth} px wide in a window of ${width}`);
    for (const piece of pieces) {
        if (scroller(piece.element) || piece.element.closest("#nav-sidebar")) continue;
        if (piece.rect.left < 5 || piece.rect.right > width - 5) faults.push(`"${piece.text}" is at the edge of the window`);
    }

    for (const list of document.querySelectorAll("#changelist .results")) {
        if (list.scrollWidth > list.clientWidth) faults.push(`the list is ${list.scrollWidth} px wide in ${list.clientWidth}`);
    }

    // Containers: no box beyond its parent's.
    for (const element of document.querySelectorAll("#content *, .breadcrumbs *, .object-tools *")) {
        const style = getComputedStyle(element);
        const parent = element.parentElement;
        if (!isShown(element) || isHiddenByClip(element) || style.display.startsWith("inline") || style.display === "contents") continue;
        if (["absolute", "fixed"].includes(style.position) || element.closest("svg, select")) continue;
        if (element.matches(".actions")) continue; // too wide in Django 5.2 and 6.0, and empty there
        if (scrolls(parent) || scroller(element) || getComputedStyle(parent).display.startsWith("inline")) continue;
        const box = element.getBoundingClientRect(), around = parent.getBoundingClientRect();
        if (!box.width || !around.width) continue;
        if (box.left < around.left - TOLERANCE || box.right > around.right + TOLERANCE) {
            faults.push(`${name(element)} (${Math.round(box.left)} to ${Math.round(box.right)}) exceeds ${name(parent)} (${Math.round(around.left)} to ${Math.round(around.right)})`);
        }
    }
    return [...new Set(faults)].slice(0, 12);
}
