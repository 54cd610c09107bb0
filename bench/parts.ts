import type { Part } from './measure.ts'

const loadPart = async (name: 'send' | 'requests' | 'latency') => ({ part: (await import('./load-parts.ts'))[name] })

/** Parts by name, with the question that their tables answer. */
export const parts: Record<string, [about: string, load: () => Promise<{ part: Part }>]> = {
  send: ['messages of visitors at 1, 64 and 128 at once, beside bare servers and others', () => loadPart('send')],
  requests: ['processor time of each kind of request, as parts and in one process', () => loadPart('requests')],
  latency: ['from an agent’s message to the visitor’s stream, beside bare servers', () => loadPart('latency')],
  history: ['whether pages and sends get slower with a million messages', () => import('./history.ts')],
  retention: ['sends while old messages are removed; --full removes a million', () => import('./retention.ts')],
  search: ['searches of a million messages', () => import('./search.ts')],
  idle: ['processor time and database commands while nobody uses the service', () => import('./idle.ts')],
  capacity: ['memory, processor and disk of visitors and messages, and sizes', () => import('./capacity/part.ts')],
  delivery: ['backlog, steady rate and a killed worker, beside job queues', () => import('./delivery/part.ts')],
  queue: ['many destinations, many finished deliveries', () => import('./delivery/queue-part.ts')],
  streams: ['memory, events, resumes, slow readers, a gateway that stops', () => import('./streams/part.ts')],
  faults: ['lost, doubled, late messages through cuts and lost answers, beside others', () => import('./faults.ts')],
  page: ['what the widget costs a page; fails above 10 ms of script before opening', () => import('./page.ts')],
  mount: ['longest task of one more message among 1,000; fails above 30 ms', () => import('./mount.ts')],
}
