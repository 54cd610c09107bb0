/** Returns true for an author who talks with the visitor: an agent or a bot. */
export const isTeam = (author?: { kind: string }): boolean => author?.kind === 'agent' || author?.kind === 'bot'
