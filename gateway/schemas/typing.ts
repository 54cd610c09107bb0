import { OneOf, Strict } from './fields.ts'

export const TypingBody = Strict({ state: OneOf(['started', 'stopped']) }, { examples: [{ state: 'started' }] })
