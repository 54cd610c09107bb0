import { useEffect } from 'preact/hooks'
import { useConsole } from '../../console-context.ts'
import { pathOf } from '../../router.ts'
import { countOf } from '../../time.ts'
import { useLoad } from '../../ui/load.tsx'
import { FailureNotice } from '../../ui/page.tsx'

interface SavedReplyListProps {
  /** The letters that the operator has typed after the slash. */
  prefix: string
  field: { current: HTMLTextAreaElement | null }
  onChosen: (body: string) => void
}

const buttons = () => [...document.querySelectorAll<HTMLElement>('.saved-replies button')]

export const focusFirstReply = () => buttons()[0]?.focus()

/** Inserts the first reply of the list, if there is one. */
export const chooseFirstReply = () => buttons()[0]?.click()

/**
 * Shows the saved replies whose shortcut begins with the typed letters. The down arrow key moves
 * the focus from the reply field to the list. The arrow keys move it in the list. Escape moves it
 * back to the field. Enter in the field inserts the first reply and sends nothing.
 */
export function SavedReplyList({ prefix, field, onChosen }: SavedReplyListProps) {
  const { api, announcer } = useConsole()
  const loaded = useLoad(async () => (await api.messaging.listSavedReplies({})).replies, [])
  const found = loaded.value?.filter(({ shortcut }) => shortcut.startsWith(prefix))
  const count = found?.length
  useEffect(() => {
    if (count === undefined) return
    announcer.say(
      count === 0
        ? 'No saved reply.'
        : `${countOf(count, 'saved reply', 'saved replies')}. Press the down arrow to choose.`,
    )
  }, [count])

  function move(event: KeyboardEvent) {
    const all = buttons()
    const at = all.indexOf(document.activeElement as HTMLElement)
    if (event.key === 'ArrowDown') all[Math.min(at + 1, all.length - 1)]?.focus()
    else if (event.key === 'ArrowUp' && at > 0) all[at - 1]?.focus()
    else if (event.key === 'ArrowUp' || event.key === 'Escape') field.current?.focus()
    else return
    event.preventDefault()
    event.stopPropagation()
  }

  return (
    <section class="saved-replies" aria-label="Saved replies" onKeyDown={move}>
      <FailureNotice failure={loaded.failure} retry={() => void loaded.reload()} />
      {count === 0 && (
        <p class="hint">
          No saved reply with this shortcut. Add some in the <a href={pathOf({ view: 'replies' })}>saved replies</a>, or
          press Send to send this text.
        </p>
      )}
      {found?.map(({ shortcut, body }) => (
        <button type="button" key={shortcut} onClick={() => onChosen(body)}>
          <strong>/{shortcut}</strong> <span class="ellipsis">{body}</span>
        </button>
      ))}
    </section>
  )
}
