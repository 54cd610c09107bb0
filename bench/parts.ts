import type { Part } from './part.ts'

/** Parts by name, loaded on demand. */
export const parts: Record<string, () => Promise<Part>> = {
  send: async () => (await import('./send/part.ts')).sendPart,
  trace: async () => (await import('./trace/part.ts')).tracePart,
  requests: async () => (await import('./requests/part.ts')).requestsPart,
  latency: async () => (await import('./latency/part.ts')).latencyPart,
  history: async () => (await import('./history/part.ts')).historyPart,
  retention: async () => (await import('./retention/part.ts')).retentionPart,
  search: async () => (await import('./search/part.ts')).searchPart,
  start: async () => (await import('./start/part.ts')).startPart,
  idle: async () => (await import('./idle/part.ts')).idlePart,
  capacity: async () => (await import('./capacity/part.ts')).capacityPart,
  delivery: async () => (await import('./delivery/part.ts')).deliveryPart,
  queue: async () => (await import('./delivery/queue-part.ts')).queuePart,
  streams: async () => (await import('./streams/part.ts')).streamsPart,
}
