// What GET /v1/swarm/live sends; the Go types stand in internal/report.

export type Range = [first: number, last: number];
export interface Stage { node: string; layers: Range }
export interface Swarm {
  state: 'healthy' | 'degraded' | 'failed';
  why?: string[];
  gateway: string;
  version: string;
  generation: number;
  chaos: boolean;
  links: boolean;
  keys: boolean;
  started: string;
}
export interface Loading { model: string; layers: Range; phase: string; done: number; total: number; error?: string }
export interface Node {
  id: string;
  pid?: number;
  alive: boolean;
  desired: string;
  latency_ms: number | null;
  load: number | null;
  round_trip_ms: number | null;
  memory_used: number;
  memory_budget: number;
  tokens_computed: number;
  sessions: number;
  cells: number;
  free_cells: number;
  fragments: { model: string; layers: Range }[];
  if_it_dies?: Record<string, string>;
  status: string;
  since: string;
  tokens_per_second: number;
  loading?: Loading[];
  link?: string;
}
export interface Pipeline { pipeline_id: number; live: boolean; stages: Stage[] }
export interface Model {
  id: string;
  ready: boolean;
  demo?: boolean;
  missing?: string;
  layers: number;
  context_length: number;
  bytes: number;
  pipelines: Pipeline[];
}
export interface Answers {
  running: number;
  queued: number;
  finished: number;
  left: number;
  lost: number;
  rescues: Record<string, number>;
  refused: Record<string, number>;
}
export interface Flow { model: string; stages: { node: string; first: number; last: number }[]; count: number }
export interface Pool {
  generation: number;
  activated: string;
  pending?: number;
  map_current: boolean;
  writer_deficit: number;
  groups: { node: string; writers: number; floor: number; draining: number; dialing: number; sessions: number; ready: boolean; outage?: boolean }[];
  sessions: number;
  losses: number;
  drops: number;
  buffered_bytes: number;
}
export interface Pulse { tokens_per_second: number; first_token_ms: number | null; gap_ms: number | null; running: number; queued: number }
export interface Event {
  seq: number;
  time: string;
  kind: string;
  level: 'debug' | 'info' | 'warn' | 'error';
  node?: string;
  model?: string;
  job?: string;
  text: string;
  detail: Record<string, unknown>;
}
export interface Frame { rev: number; full?: boolean; parts: Record<string, unknown> }
