// Entry of the chat that `widget.js` loads. This module also exports the code that several chunks
// share. So the build puts that code into the chat, and each chunk imports only the chat.
export { createConfigRefresh } from '../config-refresh.ts'
export { default as actionsCss } from './actions.css?inline'
export { createWidget } from './widget.ts'
