import { signal } from '@preact/signals';

export type Theme = 'auto' | 'light' | 'dark';
const kept = 'hecate-theme';

function remembered(): Theme {
  const t = localStorage.getItem(kept);
  return t === 'light' || t === 'dark' ? t : 'auto';
}

export const theme = signal<Theme>(remembered());
/** repaint counts changes of colour, for what draws on a canvas. */
export const repaint = signal(0);

export function applyTheme(): void {
  document.documentElement.style.colorScheme = theme.value === 'auto' ? 'light dark' : theme.value;
  repaint.value++;
}

export function nextTheme(): void {
  theme.value = theme.value === 'auto' ? 'dark' : theme.value === 'dark' ? 'light' : 'auto';
  localStorage.setItem(kept, theme.value);
  applyTheme();
}

matchMedia('(prefers-color-scheme: dark)').addEventListener('change', applyTheme);

/** colour resolves a custom property to something that a canvas understands. */
export function colour(name: string): string {
  const probe = document.createElement('i');
  probe.style.color = `var(${name})`;
  document.body.append(probe);
  const value = getComputedStyle(probe).color;
  probe.remove();
  return value;
}
