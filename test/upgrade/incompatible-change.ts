import type { SourceChange } from '../support/source-copy.ts'

/** Makes a version incompatible with this one: its cores do not recognize a repeated message of a visitor. */
export const incompatibleChange: SourceChange = {
  folder: 'core',
  from: 'keyOf(sessionId, clientOperationId)',
  to: "keyOf(sessionId, '', clientOperationId)",
}
