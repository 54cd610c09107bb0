import { useEffect, useLayoutEffect, useRef, useState } from 'preact/hooks'
import { useConsole } from '../console-context.ts'
import { Button } from '../ui/button.tsx'
import { Icon } from '../ui/icon.tsx'
import type { Thread } from './thread.ts'

const maxLength = 4000
const countFrom = 3600
const stoppedTypingMs = 4000

interface ComposerProps {
  thread: Thread
  closed: boolean
  field: { current: HTMLTextAreaElement | null }
}

export function Composer({ thread, closed, field }: ComposerProps) {
  const { drafts } = useConsole()
  const { conversationId } = thread
  const [text, setText] = useState(() => drafts.text(conversationId))
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

  function changed(next: string) {
    setText(next)
    drafts.keepText(conversationId, next)
    clearTimeout(idle.current)
    thread.setTyping(next.trim() !== '')
    idle.current = setTimeout(() => thread.setTyping(false), stoppedTypingMs)
  }

  function send() {
    if (!sendable) return
    thread.outgoing.send(text)
    clearTimeout(idle.current)
    setText('')
    drafts.keepText(conversationId, '')
    thread.setTyping(false)
    field.current!.focus()
  }

  return (
    <form
      class="composer"
      onSubmit={(event) => {
        event.preventDefault()
        send()
      }}
    >
      {closed && <p class="hint">This conversation is closed. A reply reopens it.</p>}
      <div class="composer-row">
        <textarea
          ref={field}
          class="input composer-field"
          rows={1}
          aria-label="Reply"
          aria-describedby="composer-hint"
          placeholder="Reply…"
          value={text}
          onInput={(event) => changed(event.currentTarget.value)}
          onBlur={() => thread.setTyping(false)}
          onKeyDown={(event) => {
            if (event.isComposing) return
            if (event.key === 'Enter' && !event.shiftKey) {
              event.preventDefault()
              send()
            } else if (event.key === 'Escape') {
              event.currentTarget.blur()
              document.querySelector<HTMLElement>('.row[aria-current]')?.focus()
            }
          }}
        />
        <Button type="submit" kind="primary send" disabled={!sendable} aria-label="Send">
          <Icon name="send" />
        </Button>
      </div>
      <p class={left < 0 ? 'hint field-error' : 'hint'} id="composer-hint">
        {length > countFrom ? `${left} of ${maxLength} characters left` : 'Enter to send, Shift+Enter for a new line'}
      </p>
    </form>
  )
}
