// The entry that the loader imports when the chat is needed.
export { createWidget } from './widget.ts'
