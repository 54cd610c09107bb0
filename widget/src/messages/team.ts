import type { MessageAuthor } from '../client/types.ts'

/** Returns true for an author who talks with the visitor: an agent or a bot. */
export const isTeam = ({ kind }: MessageAuthor): boolean => kind === 'agent' || kind === 'bot'
