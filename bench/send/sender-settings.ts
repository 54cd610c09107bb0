/** Number of visitors, each with a conversation of its own. */
export const visitorCount = 512
/** Number of streams of the Durable Streams server. With more than its 100 open files, it answers 404 now and then. */
export const streamCount = 64
