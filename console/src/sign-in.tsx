import { useEffect, useRef, useState } from 'preact/hooks'
import type { SessionEnd, SessionHolder } from './session.ts'
import { Button } from './ui/button.tsx'
import { Field } from './ui/field.tsx'
import { Icon } from './ui/icon.tsx'
import { Notice } from './ui/notice.tsx'

const reasons: Record<SessionEnd, { tone: 'info' | 'warning'; text: string }> = {
  signed_out: { tone: 'info', text: 'You are signed out. This tab keeps no session data.' },
  expired: { tone: 'warning', text: 'Your session has expired. Sign in again; your drafts are saved.' },
  rejected: {
    tone: 'warning',
    text: 'The service no longer accepts your session. Sign in again; your drafts are saved.',
  },
}

export function SignIn({ holder }: { holder: SessionHolder }) {
  const [problem, setProblem] = useState<string>()
  const token = useRef<HTMLTextAreaElement>(null)
  const name = useRef<HTMLInputElement>(null)
  const ended = holder.ended.value
  useEffect(() => {
    document.title = 'Sign in · Console'
    token.current?.focus()
  }, [])

  function submit(event: Event) {
    event.preventDefault()
    const wrong = holder.signIn(token.current!.value, name.current!.value)
    setProblem(wrong)
    if (wrong) token.current!.focus()
  }

  return (
    <main class="sign-in">
      <form class="card sign-in-card" onSubmit={submit} noValidate autocomplete="off">
        <div class="brand">
          <Icon name="inbox" />
        </div>
        <h1>Workspace console</h1>
        {ended && !problem && <Notice tone={reasons[ended].tone}>{reasons[ended].text}</Notice>}
        <Field
          label="Workspace session"
          hint={
            <>
              Your workspace session token. It is stored in this tab only. For the local demo, run the command that{' '}
              <code>npm start</code> printed.
            </>
          }
          error={problem}
        >
          {(attributes) => (
            <textarea
              {...attributes}
              ref={token}
              class="input mono secret-input"
              rows={4}
              required
              spellcheck={false}
              autocapitalize="off"
              onKeyDown={(event) => {
                if (event.key === 'Enter') submit(event)
              }}
            />
          )}
        </Field>
        <Field label="Your name" hint="Shown to visitors with your replies. If empty, the name in the session is used.">
          {(attributes) => <input {...attributes} ref={name} class="input" maxLength={128} autocomplete="off" />}
        </Field>
        <Button kind="primary wide" type="submit">
          Sign in
        </Button>
      </form>
    </main>
  )
}
