/** What the bench puts into the text of each event: which it is, and when it should have been published. */
export const marker = (index: number, dueAt: number): string => `[[${index} ${dueAt.toFixed(3)}]]`

export const markers = /\[\[(\d+) (\d+\.\d+)\]\]/g
