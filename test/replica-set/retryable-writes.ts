import type { Document } from 'mongodb'
import { failure } from './errors.ts'
import type { StoredAnswer } from './member-data.ts'
import { encode } from './wire.ts'

/**
 * Executes a write. A repeat of a retryable write gets the stored answer, and changes nothing. It
 * waits if the first attempt is still running.
 */
export async function repeatedAnswer(
  answers: Map<string, StoredAnswer>,
  command: Document,
  run: () => Promise<Buffer>,
): Promise<Buffer> {
  if (command.txnNumber === undefined) return run()
  const session = command.lsid.id.toString('hex') as string
  const txnNumber = BigInt(command.txnNumber)
  const known = answers.get(session)
  if (known && known.txnNumber > txnNumber) return encode(failure('TransactionTooOld', command))
  if (known?.txnNumber === txnNumber) return known.answer
  const stored = { txnNumber, answer: run() }
  answers.set(session, stored)
  // A write that was not executed can be executed by its repeat.
  stored.answer.catch(() => {
    if (answers.get(session) === stored) answers.delete(session)
  })
  return stored.answer
}
