import { useEffect, useState } from 'preact/hooks'
import { useConsole } from '../console-context.ts'
import { opensNext } from '../storages.ts'
import { useAction } from '../ui/load.tsx'
import type { Thread } from './thread.ts'

/**
 * Time in milliseconds for which *Reopen* is disabled after a closing, so that a double click on
 * *Close* does not reopen the conversation.
 */
const restMs = 1_000

/**
 * The buttons of a conversation. `undo` is set after a closing in this view. `isAsked` is true if
 * the visitor was then asked for a rating.
 */
export function useConversationActions(thread: Thread) {
  const { session, holder, announcer, inbox, router } = useConsole()
  const { busy, failure, run } = useAction()
  const [undo, setUndo] = useState<'offered' | 'resting'>()
  const [isAsked, setIsAsked] = useState(false)

  /** `call` returns what screen readers say when it has succeeded. */
  const act = (call: () => Promise<string>) => () => run(async () => announcer.say(await call()))

  const assign = act(async () => {
    const assigned = thread.conversation.peek()?.assignedOperatorId === session.operator
    await thread.assign(assigned ? undefined : { ...holder.agent(), operatorId: session.operator })
    return assigned ? 'Conversation unassigned.' : 'Conversation assigned to you.'
  })
  const switchBot = act(async () => {
    const isStopped = thread.conversation.peek()?.bot?.stopped
    await (isStopped ? thread.resumeBot() : thread.stopBot())
    return isStopped ? 'Conversation given back to the bot.' : 'Bot stopped.'
  })
  function offerUndo() {
    setUndo('resting')
    setIsAsked(false)
    setTimeout(() => setUndo((now) => now && 'offered'), restMs)
    return 'Conversation closed. To undo, choose Undo.'
  }
  const close = act(async () => {
    await thread.close()
    return offerUndo()
  })
  const closings = thread.closings.value
  useEffect(() => {
    if (closings === 0) return
    announcer.say(offerUndo())
    if (opensNext.peek())
      void inbox
        .nextUnanswered(thread.conversationId)
        .then((next) => next && router.go(router.inFilter({ conversationId: next })))
  }, [closings])
  const requestRating = act(async () => {
    await thread.requestRating()
    setIsAsked(true)
    return 'The visitor was asked for a rating.'
  })
  const reopen = act(async () => {
    await thread.reopen()
    setUndo(undefined)
    return 'Conversation reopened.'
  })

  return { busy, failure, undo, isAsked, assign, switchBot, close, requestRating, reopen }
}
