import { useEffect, useRef, useState } from 'preact/hooks'
import type { SessionEnd, SessionHolder } from './session.ts'
import { Field } from './ui/field.tsx'
import { Icon } from './ui/icon.tsx'
import { Notice } from './ui/notice.tsx'

const reasons: Record<SessionEnd, { tone: 'info' | 'warning'; text: string }> = {
  signed_out: { tone: 'info', text: 'You are signed out. Nothing of the session is left in this tab.' },
  expired: {
    tone: 'warning',
    text: 'Your session has expired. Sign in with a new one; what you were writing is still here.',
  },
  refused: {
    tone: 'warning',
    text: 'The service does not accept your session any more. Sign in with a new one; what you were writing is still here.',
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
              The token that your workspace gives you. It stays in this tab only. On your own machine{' '}
              <code>npm start</code> has printed the command that shows the demo’s.
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
        <Field label="Your name" hint="What visitors see beside your answers. Left empty: as the session names you.">
          {(attributes) => <input {...attributes} ref={name} class="input" maxLength={128} autocomplete="off" />}
        </Field>
        <button class="button primary wide" type="submit">
          Sign in
        </button>
      </form>
    </main>
  )
}
