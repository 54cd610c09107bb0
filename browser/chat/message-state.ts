/** States of a message at the service, in order. */
const states = ['queued', 'sent', 'delivered', 'read']

/** Returns how far a message in this state has come. A message only moves forward. */
export const stateRank = (state: string): number => states.indexOf(state)
