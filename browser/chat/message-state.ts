/** States of a message at the service, in order. */
const states = ['queued', 'sent', 'delivered', 'read']

/** Returns the place of a state in the order. A message never returns to an earlier state. */
export const stateRank = (state: string): number => states.indexOf(state)
