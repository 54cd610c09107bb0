/**
 * Marker in the text of each event: the event's index and due time. Receivers compute latency from
 * it.
 */
export const marker = (index: number, dueAt: number): string => `[[${index} ${dueAt.toFixed(3)}]]`

export const markers = /\[\[(\d+) (\d+\.\d+)\]\]/g
