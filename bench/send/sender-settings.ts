/** Number of visitors, each with a conversation of its own. */
export const visitorCount = 512
/**
 * Number of streams, channels or users of the other servers. The server of Durable Streams keeps 100 files open,
 * and with more streams it answers 404 now and then.
 */
export const streamCount = 64

/** What the sender posts: to the service, to a bare server, or to one of the other servers. */
export type SenderKind = 'service' | 'bare' | 'streams' | 'nchan' | 'ejabberd'
