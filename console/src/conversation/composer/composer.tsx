import { useEffect, useLayoutEffect, useRef } from 'preact/hooks'
import { isComposing } from '../../../../browser/chat/composing.ts'
import { useConsole, useShortcuts } from '../../console-context.ts'
import { newOperationId } from '../../operations.ts'
import { pathOf } from '../../router.ts'
import { countOf } from '../../time.ts'
import { useAction, useLoad } from '../../ui/load.tsx'
import { Button, FailureNotice } from '../../ui/page.tsx'
import type { Thread } from '../thread.ts'

const maxLength = 4000
const countFrom = 3600
const stoppedTypingMs = 4000

interface ComposerProps {
  thread: Thread
  closed: boolean
  field: { current: HTMLTextAreaElement | null }
  /** Gets a function that adds a text to the reply, also while the operator writes a note. */
  addToReply: { current: (text: string) => void }
}

export function Composer({ thread, closed, field, addToReply }: ComposerProps) {
  const { drafts, announcer } = useConsole()
  const { conversationId } = thread
  const { isNote, text: reply, note } = drafts.of(conversationId)
  const text = isNote ? note.body : reply
  const { busy, failure, run, clear: clearFailure } = useAction()
  const idle = useRef<ReturnType<typeof setTimeout>>(undefined)
  const length = [...text].length
  const left = maxLength - length
  const sendable = text.trim() !== '' && left >= 0

  useLayoutEffect(() => {
    const element = field.current!
    element.style.height = 'auto'
    element.style.height = `${Math.min(element.scrollHeight + 2, 220)}px`
  }, [text])
  useEffect(
    () => () => {
      clearTimeout(idle.current)
      thread.setTyping(false)
    },
    [thread],
  )

  function keep(next: string) {
    const { note } = drafts.of(conversationId)
    drafts.keep(conversationId, isNote ? { note: { ...note, body: next } } : { text: next })
  }

  addToReply.current = (more) => {
    drafts.keep(conversationId, { text: reply === '' ? more : `${reply}\n${more}` })
    choose(false)
    field.current!.focus()
  }

  /** Changes between the draft of the reply and the draft of the note. */
  function choose(isNote: boolean) {
    drafts.keep(conversationId, { isNote })
    clearFailure()
    thread.setTyping(false)
  }

  useShortcuts({
    m: () => {
      choose(!isNote)
      field.current!.focus()
    },
  })

  function changed(next: string) {
    keep(next)
    clearFailure()
    clearTimeout(idle.current)
    // The visitor must not see that the operator writes a note.
    thread.setTyping(!isNote && next.trim() !== '')
    idle.current = setTimeout(() => thread.setTyping(false), stoppedTypingMs)
  }

  /** The letters after the slash. Undefined if the text cannot be a shortcut. */
  const asked = /^\/([a-z0-9-]*)$/i.exec(text)?.[1]?.toLowerCase()

  function insert(body: string) {
    changed(body)
    field.current!.focus()
  }

  function send(andClose = false) {
    if (!sendable || busy) return
    if (isNote) return void run(addNote)
    thread.reply(text, { closes: andClose })
    insert('')
  }

  async function addNote() {
    const attempt = note.attempt?.body === text ? note.attempt : { operationId: newOperationId(), body: text }
    // A repeat after a reload must have the same operation ID, so that it adds no second note.
    drafts.keep(conversationId, { note: { body: text, attempt } })
    await thread.addNote(text, attempt.operationId)
    drafts.keep(conversationId, { note: { body: '' } })
    announcer.say('Note added.')
    insert('')
  }

  return (
    <form
      class={isNote ? 'composer note' : 'composer'}
      onSubmit={(event) => {
        event.preventDefault()
        send()
      }}
    >
      <div class="line composer-mode">
        <label class="chip">
          <input type="checkbox" checked={isNote} onChange={(event) => choose(event.currentTarget.checked)} />
          <span>Internal note</span>
        </label>
        {isNote && <p class="hint">Only operators see this note.</p>}
        {closed && !isNote && <p class="hint">This conversation is closed. A reply reopens it.</p>}
      </div>
      <FailureNotice failure={failure} />
      {asked !== undefined && <SavedReplyList prefix={asked} field={field} onChosen={insert} />}
      <div class="composer-row">
        <textarea
          ref={field}
          class="input composer-field"
          rows={1}
          aria-label={isNote ? 'Note' : 'Reply'}
          readOnly={busy}
          aria-describedby="composer-hint"
          placeholder={isNote ? 'Note for other operators…' : 'Reply…'}
          value={text}
          onInput={(event) => changed(event.currentTarget.value)}
          onBlur={() => thread.setTyping(false)}
          onKeyDown={(event) => {
            if (isComposing(event)) return
            if (event.key === 'Enter' && !event.shiftKey) {
              event.preventDefault()
              // A shortcut that is misspelt or still loading must not reach the visitor.
              if (asked === undefined) send(event.ctrlKey || event.metaKey)
              else buttons()[0]?.click()
            } else if (event.key === 'ArrowDown' && asked !== undefined) {
              event.preventDefault()
              buttons()[0]?.focus()
            } else if (event.key === 'Escape') {
              // An answered conversation may have left the list.
              const row = document.querySelector<HTMLElement>('.row[aria-current]')
              ;(row?.checkVisibility() ? row : document.querySelector<HTMLElement>('.log'))?.focus()
            }
          }}
        />
        <Button
          type="submit"
          kind="primary send"
          icon="send"
          disabled={!sendable}
          aria-label={isNote ? 'Add note' : 'Send'}
        />
      </div>
      <div class="composer-foot">
        <p class={left < 0 ? 'hint field-error' : 'hint'} id="composer-hint">
          {asked !== undefined
            ? 'Enter to insert the saved reply'
            : length > countFrom
              ? `${left} of ${maxLength} characters left`
              : isNote
                ? 'Enter to add, Shift+Enter for a new line'
                : 'Enter to send, Shift+Enter for a new line'}
        </p>
        {!isNote && (
          <Button
            kind="ghost small"
            title="Ctrl+Enter"
            disabled={!sendable || asked !== undefined}
            onClick={() => send(true)}
            text="Send and close"
          />
        )}
      </div>
    </form>
  )
}

interface SavedReplyListProps {
  /** The letters that the operator has typed after the slash. */
  prefix: string
  field: { current: HTMLTextAreaElement | null }
  onChosen: (body: string) => void
}

const buttons = () => [...document.querySelectorAll<HTMLElement>('.saved-replies button')]

/**
 * Shows the saved replies whose shortcut begins with the typed letters. Arrow keys move the focus,
 * Escape goes back.
 */
function SavedReplyList({ prefix, field, onChosen }: SavedReplyListProps) {
  const { api, announcer } = useConsole()
  const loaded = useLoad(async () => (await api.messaging.listSavedReplies({})).replies, [])
  const found = loaded.value?.filter(({ shortcut }) => shortcut.startsWith(prefix))
  const count = found?.length
  useEffect(() => {
    if (count === undefined) return
    announcer.say(
      count === 0
        ? 'No saved reply.'
        : countOf(
            count,
            '# saved reply. Press the down arrow to choose.',
            '# saved replies. Press the down arrow to choose.',
          ),
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
      <FailureNotice failure={loaded.failure} retry={loaded.reload} />
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
