import { useSignalEffect } from '@preact/signals';
import { useEffect, useRef } from 'preact/hooks';
import uPlot from 'uplot';
import { history } from './live';
import { colour, repaint } from './theme';
import type { Pulse } from './types';
import { ms } from './words';

interface Series {
  title: string;
  says: string;
  pick: (p: Pulse) => number | null;
  show: (v: number | null) => string;
  least: number; // of the top of the scale, so that small noise looks small
  ink: string;
  dots?: boolean; // single happenings, not a level
}

const all: Series[] = [
  { title: 'Tokens', says: 'sent to clients, per second', pick: (p) => p.tokens_per_second, show: (v) => `${(v ?? 0).toFixed(0)} /s`, least: 20, ink: '--flame' },
  { title: 'First token', says: 'median wait of each second', pick: (p) => p.first_token_ms, show: ms, least: 50, ink: '--verd', dots: true },
  { title: 'Gap', says: 'longest pause that a failure made', pick: (p) => p.gap_ms, show: ms, least: 500, ink: '--madder', dots: true },
  { title: 'Queue', says: 'requests that wait for room', pick: (p) => p.queued, show: (v) => `${v ?? 0}`, least: 4, ink: '--ink-2' },
];

export function Charts() {
  return (
    <section aria-labelledby="charts-title" class="charts">
      <h2 id="charts-title">The last five minutes</h2>
      <div class="plots">{all.map((s) => <Plot key={s.title} s={s} />)}</div>
    </section>
  );
}

function newest(s: Series): number | null {
  const points = history.value.points;
  if (!s.dots) return points.length ? s.pick(points[points.length - 1]!) : null;
  for (let i = points.length - 1; i >= 0; i--) {
    const v = s.pick(points[i]!);
    if (v !== null) return v;
  }
  return null;
}

function Plot({ s }: { s: Series }) {
  const box = useRef<HTMLDivElement>(null);
  const plot = useRef<uPlot | undefined>(undefined);
  useEffect(() => {
    const size = new ResizeObserver(([entry]) => plot.current?.setSize({ width: Math.floor(entry!.contentRect.width), height: 96 }));
    size.observe(box.current!);
    return () => {
      size.disconnect();
      plot.current?.destroy();
    };
  }, []);
  useSignalEffect(() => {
    repaint.value;
    plot.current?.destroy();
    plot.current = new uPlot(optionsOf(s, box.current!.clientWidth || 240), [[], []], box.current!);
    plot.current.setData(dataOf(s, history.peek()));
  });
  useSignalEffect(() => {
    const h = history.value;
    plot.current?.setData(dataOf(s, h));
  });
  const text = s.show(newest(s));
  return (
    <figure>
      <figcaption><b>{s.title}</b><output>{text}</output><small>{s.says}</small></figcaption>
      <div ref={box} class="plot" role="img" aria-label={`${s.title}, ${s.says}, over the last five minutes. Newest: ${text}`} />
    </figure>
  );
}

const span = 300;

function dataOf(s: Series, h: { points: Pulse[]; end: number }): uPlot.AlignedData {
  const end = Math.round(h.end / 1000);
  const first = end - h.points.length + 1;
  return [h.points.map((_, i) => first + i), h.points.map(s.pick)];
}

function optionsOf(s: Series, width: number): uPlot.Options {
  const ink = colour(s.ink);
  const faint = colour('--line');
  const text = colour('--ink-2');
  const axis = { stroke: text, font: '11px "Bricolage Grotesque Variable", sans-serif', ticks: { show: false } };
  return {
    width, height: 96, legend: { show: false }, cursor: { show: false }, padding: [8, 4, 0, 0],
    scales: {
      x: { time: true, range: () => { const end = Math.round(history.peek().end / 1000) || Math.round(Date.now() / 1000); return [end - span, end]; } },
      y: { range: (_, __, max) => [0, nice(Math.max(s.least, max ?? 0))] },
    },
    axes: [
      { ...axis, size: 20, space: 70, grid: { show: false }, splits: (_, __, ___, max) => [max - 240, max - 120, max - 9], values: () => ['4 min ago', '2 min ago', 'now'] },
      { ...axis, size: 44, grid: { stroke: faint, width: 1 }, splits: (_, __, min, max) => [min, max / 2, max], values: (_, at) => at.map((v) => short(v)) },
    ],
    series: [
      {},
      s.dots
        ? { stroke: ink, width: 0, paths: () => null, points: { show: true, size: 6, fill: ink, stroke: ink } }
        : { stroke: ink, width: 1.6, fill: translucent(ink), points: { show: false } },
    ],
  };
}

const translucent = (ink: string): string => (ink.startsWith('rgb(') ? ink.replace('rgb(', 'rgba(').replace(')', ', 0.14)') : ink);

/** nice rounds the top of a scale up, in steps wide enough that it seldom moves. */
function nice(v: number): number {
  const power = 10 ** Math.floor(Math.log10(v));
  return ([1, 2, 4, 10].find((m) => v <= m * power) ?? 10) * power;
}

const short = (v: number): string => (v >= 1000 ? `${v / 1000} k` : String(v));
