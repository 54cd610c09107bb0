// Entry of the chat that `widget.js` loads. It also exports the code that several late chunks share,
// so that the build puts this code into the chat and each chunk imports only the chat.
export { createConfigRefresh } from '../config-refresh.ts'
export { default as actionsCss } from './actions.css?inline'
export { createWidget } from './widget.ts'
