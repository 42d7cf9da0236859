/** Zooms and moves a map by wheel, two fingers or dragging with the mouse. */
import { useRef } from 'preact/hooks';

interface Point {
  readonly x: number;
  readonly y: number;
}

interface Options {
  readonly isZoomed: boolean;
  readonly field: { readonly current: HTMLElement | null };
  /** `at`: position in the frame, 0 ... 1. */
  readonly zoom: (factor: number, at: Point) => void;
  /** In parts of the frame; returns whether the map moved. */
  readonly pan: (rows: number, columns: number) => boolean;
}

/** Pixels before a press becomes a drag. */
const slack = 4;

export function usePanning({ isZoomed, field, zoom, pan }: Options) {
  const drag = useRef<{ x: number; y: number; moved: boolean } | undefined>(undefined);
  const fingers = useRef<{ distance: number; x: number; y: number } | undefined>(undefined);
  /** The remainder of a gesture that is less than a cell. */
  const rest = useRef({ rows: 0, columns: 0, factor: 1 });
  const box = () => field.current!.getBoundingClientRect();
  const inFrame = ({ x, y }: Point): Point => {
    const { left, top, width, height } = box();
    return { x: (x - left) / width, y: (y - top) / height };
  };
  const panBy = (x: number, y: number): boolean => {
    const { width, height } = box();
    rest.current.rows += y / height;
    rest.current.columns += x / width;
    const { rows, columns } = rest.current;
    if (!pan(rows, columns)) return false;
    rest.current.rows = rest.current.columns = 0;
    return true;
  };
  const zoomBy = (factor: number, at: Point) => {
    rest.current.factor *= factor;
    // Small factors are collected, because the smallest change is one cell.
    if (Math.abs(Math.log(rest.current.factor)) < 0.05) return;
    zoom(rest.current.factor, at);
    rest.current.factor = 1;
  };

  const pinch = ({ touches: [a, b] }: TouchEvent) => {
    const middle = { x: (a!.clientX + b!.clientX) / 2, y: (a!.clientY + b!.clientY) / 2 };
    return { distance: Math.hypot(a!.clientX - b!.clientX, a!.clientY - b!.clientY), ...middle };
  };
  const handlers = {
    onWheel: (event: WheelEvent) => {
      // A pinch on a touchpad is reported as a wheel event with Ctrl.
      if (event.ctrlKey || event.metaKey) {
        event.preventDefault();
        zoomBy(Math.exp(-event.deltaY / 200), inFrame({ x: event.clientX, y: event.clientY }));
      } else if (isZoomed && panBy(event.deltaX, event.deltaY)) event.preventDefault();
    },
    onTouchStart: (event: TouchEvent) => {
      fingers.current = event.touches.length === 2 ? pinch(event) : undefined;
    },
    onTouchMove: (event: TouchEvent) => {
      const before = fingers.current;
      if (event.touches.length !== 2 || !before) return;
      event.preventDefault();
      const now = pinch(event);
      fingers.current = now;
      // Zooms around the old middle and then moves to the new one, so that the content stays between the fingers.
      zoomBy(now.distance / before.distance, inFrame(before));
      panBy(before.x - now.x, before.y - now.y);
    },
    onPointerDown: (event: PointerEvent) => {
      drag.current =
        isZoomed && event.pointerType === 'mouse' && event.button === 0 ? { x: event.clientX, y: event.clientY, moved: false } : undefined;
    },
  };
  return {
    handlers,
    move(event: PointerEvent): boolean {
      const from = drag.current;
      if (!from || (event.buttons & 1) === 0) return false;
      const [x, y] = [from.x - event.clientX, from.y - event.clientY];
      if (!from.moved && Math.hypot(x, y) < slack) return true;
      drag.current = { x: event.clientX, y: event.clientY, moved: true };
      panBy(x, y);
      return true;
    },
    /** Called by the click that ends a drag. */
    wasDragged(): boolean {
      const { moved = false } = drag.current ?? {};
      drag.current = undefined;
      return moved;
    },
  };
}
