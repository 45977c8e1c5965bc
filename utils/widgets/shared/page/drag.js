// Dragging with a pointer.

/** Listeners that drag on a node: start(), move(pixels to the right from there), end(). */
export function dragged({ start, move, end }) {
  let drag = null;
  const release = (event) => {
    if (event.pointerId !== drag?.id) return;
    drag = null;
    end();
  };
  return {
    pointerdown(event) {
      if (event.button !== 0 || drag) return;
      drag = { id: event.pointerId, x: event.clientX };
      event.currentTarget.setPointerCapture(event.pointerId);
      start();
      event.preventDefault(); // no selection of text
    },
    pointermove(event) {
      if (event.pointerId === drag?.id) move(event.clientX - drag.x);
    },
    pointerup: release, pointercancel: release,
  };
}
