/** Marker in the text of each event: its index and its due time. */
export const marker = (index: number, dueAt: number): string => `[[${index} ${dueAt.toFixed(3)}]]`

export const markers = /\[\[(\d+) (\d+\.\d+)\]\]/g
