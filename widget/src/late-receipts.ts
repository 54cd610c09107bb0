import { loadOnce } from './load-once.ts'
import type { ReceiptsDeps } from './receipts.ts'

/**
 * Imports the code of receipts with the first agent's message. If the import fails, the next update
 * tries again.
 */
export function createLateReceipts(deps: ReceiptsDeps) {
  const load = loadOnce(async () => (await import('./receipts.ts')).createReceipts(deps), 'network_error')
  return async () => {
    if (deps.messages().some(({ author }) => author.kind === 'agent'))
      await load().then(
        (send) => send(),
        () => {},
      )
  }
}
