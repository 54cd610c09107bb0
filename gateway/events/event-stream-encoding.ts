import type { Event } from '#proto/messaging/v1/messaging_pb.js'

const SAFE_ID = /^[A-Za-z0-9._-]{1,128}$/
const SAFE_NAME = /^[a-z]+(?:[._][a-z]+)*$/

/**
 * The bytes of one event on the stream. Nothing in it can begin a field of its own: id and name are of safe characters
 * only, else there are no bytes at all, and line breaks, which inside JSON are white space, become spaces.
 */
export function encodeEvent({ id, type, json }: Pick<Event, 'id' | 'type' | 'json'>): Buffer | undefined {
  if (!SAFE_ID.test(id) || !SAFE_NAME.test(type)) return undefined
  return Buffer.from(`id: ${id}\nevent: ${type}\ndata: ${json.replace(/[\r\n]+/g, ' ')}\n\n`)
}

/** The first bytes: when to reconnect, and a comment that gets past proxies which wait for a body. */
export function encodeOpening(retryMs: number): string {
  return `retry: ${Math.round(retryMs)}\n\n: open\n\n`
}

export function encodeHeartbeat(position: number): string {
  return `: hb ${position}\n\n`
}
