/** Returns true for an author who talks with the visitor: an agent or a bot. */
export const isTeam = (author?: { kind: string }) => author?.kind === 'agent' || author?.kind === 'bot'

/** States of a message at the service, in order. */
const states = ['queued', 'sent', 'delivered', 'read']

/** Returns the place of a state in the order in which messages pass through them. A message never goes back. */
export const stateRank = (state: string) => states.indexOf(state)

/**
 * Adds a part to the text of a message that grows. `offset` counts the code points before the part.
 * Returns undefined if an earlier part is missing. Text that is known already changes nothing.
 */
export function withPart(known: string, offset: number, part: string) {
  const points = [...known]
  return offset > points.length ? undefined : known + [...part].slice(points.length - offset).join('')
}

interface GrowingText {
  body: string
  growing?: boolean | undefined
}

/** Returns true if a growing message was read before the one that is known. */
export const isEarlier = (read: Partial<GrowingText>, known: GrowingText) =>
  read.growing === true && !(known.growing && known.body.length <= (read.body ?? '').length)
