import type { Message } from '#proto/messaging/v1/messaging_pb.js'
import { useConsole } from '../../console-context.ts'
import { DialogButton } from '../../ui/dialog.tsx'
import type { Thread } from '../thread.ts'

interface WithdrawButtonProps {
  message: Message
  thread: Thread
  /** The operator's name that the visitor sees. */
  me: string
}

/** Button that withdraws a message. Shown for own messages, and for all with the scope `messages:redact`. */
export function WithdrawButton({ message, thread, me }: WithdrawButtonProps) {
  const { session } = useConsole()
  const isOwn = message.author?.kind === 'agent' && message.author.displayName === me
  if (message.redactedAt || !(isOwn || session.scopes.includes('messages:redact'))) return null
  return (
    <DialogButton
      button="Withdraw"
      kind="ghost small withdraw"
      label="Withdraw message"
      title="Withdraw message?"
      action="Withdraw message"
      danger
      onConfirm={() => thread.withdraw(message)}
    >
      <p>
        The text disappears for the visitor and for all operators, also from search and exports. What was already read,
        copied or sent to other systems, for example by webhook, is beyond reach. This cannot be undone.
      </p>
    </DialogButton>
  )
}
