// Which node somebody looks at: by pointer, by keyboard, on any part of the page.
import { computed, signal } from '@preact/signals';
import { nodeIDs } from './live';

export const spot = signal<string | undefined>(undefined);

export const spotting = (id: string) => ({
  onPointerEnter: () => (spot.value = id),
  onPointerLeave: () => (spot.value = undefined),
  onFocus: () => (spot.value = id),
  onBlur: () => (spot.value = undefined),
});

// Apart from each other, and from the flame of the traffic.
const hues = [285, 165, 20, 235, 335, 125, 200, 45];
const order = computed(() => new Map(nodeIDs.value.map((id, i) => [id, i])));

/** hueOf is the node's colour, the same everywhere. */
export function hueOf(id: string): number {
  const i = order.value.get(id) ?? 0;
  return i < hues.length ? hues[i]! : Math.round(i * 137.5) % 360;
}
export const tint = (id: string): Record<string, string> => ({ '--hue': String(hueOf(id)) });
