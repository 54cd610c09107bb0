/** Maximum size of a message between two processes. */
export const messageMaxBytes = 16 * 1024 * 1024
