const SAFE_ID = /^[A-Za-z0-9._-]{1,128}$/
const SAFE_NAME = /^[a-z]+(?:[._][a-z]+)*$/

/**
 * Encodes an event safely against field injection. An event that is not in the log has an empty id, and
 * no `id` field. Returns undefined if the id or name is unsafe. Line breaks of the JSON become spaces.
 */
export function encodeStreamedEvent(event: { id: string; type: string; json: string }): string | undefined {
  const { id, type, json } = event
  if ((id !== '' && !SAFE_ID.test(id)) || !SAFE_NAME.test(type)) return undefined
  return `${id === '' ? '' : `id: ${id}\n`}event: ${type}\ndata: ${json.replace(/[\r\n]+/g, ' ')}\n\n`
}
