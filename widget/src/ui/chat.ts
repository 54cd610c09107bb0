// What the script tag's loader fetches when the chat is wanted.
export { createWidget } from './widget.ts'
