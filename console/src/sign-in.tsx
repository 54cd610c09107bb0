import { useEffect, useRef, useState } from 'preact/hooks'
import type { ProviderProblem, SessionEnd, SessionHolder } from './session.ts'
import { localStore } from './storages.ts'
import { Button } from './ui/button.tsx'
import { Field } from './ui/field.tsx'
import { Icon } from './ui/icon.tsx'
import { Notice } from './ui/notice.tsx'

const reasons: Record<SessionEnd, { tone: 'info' | 'warning'; text: string }> = {
  signed_out: { tone: 'info', text: 'You are signed out in all tabs.' },
  expired: { tone: 'warning', text: 'Your session has expired. Sign in again; your drafts are saved.' },
  rejected: { tone: 'warning', text: 'Your session has ended. Sign in again; your drafts are saved.' },
}

const nameKey = 'service.console.name'

interface Problem {
  /** Field with the problem. Undefined for a problem of the link. */
  field?: 'token' | 'name'
  text: string
}

const providerProblems: Record<ProviderProblem, string> = {
  refused: 'The sign-in failed or took too long. Try again.',
  denied: 'Your account has no access to this console. Ask your administrator.',
  unavailable: 'The identity provider cannot be reached. Try again later.',
}

const refusedToken: Problem = {
  field: 'token',
  text: 'This token is not accepted. Copy the whole token. If it has expired, request a new one.',
}
const refusedLink: Problem = { text: 'This link was used or has expired. Create a new one.' }

/** Signs in with the link that was opened, or else with a pasted token. */
export function SignIn({ holder }: { holder: SessionHolder }) {
  const [problem, setProblem] = useState<Problem>()
  const [isBusy, setBusy] = useState(false)
  const token = useRef<HTMLTextAreaElement>(null)
  const name = useRef<HTMLInputElement>(null)
  const link = holder.link.value
  const signedIn = holder.current.value
  const ended = holder.ended.value
  const [hasProvider, setHasProvider] = useState(false)
  const providerProblem = holder.providerProblem.value
  useEffect(() => {
    void holder.calls.hasProvider().then((found) => setHasProvider(typeof found === 'object' && found.value))
  }, [])
  useEffect(() => {
    document.title = 'Sign in · Console'
    setProblem(undefined)
    ;(token.current ?? name.current)?.focus()
  }, [link])

  async function submit(event: Event) {
    event.preventDefault()
    const displayName = name.current!.value.trim()
    const pasted = token.current?.value.trim() ?? ''
    if (link === undefined && pasted === '')
      return refuse({ field: 'token', text: 'Paste your token, or open a sign-in link.' })
    if (displayName === '') return refuse({ field: 'name', text: 'Enter the name that visitors will see.' })
    localStore.setItem(nameKey, displayName)
    setBusy(true)
    const wrong = await holder.signIn(link === undefined ? { token: pasted } : { link }, displayName)
    setBusy(false)
    if (wrong === 'invalid') refuse({ field: 'name', text: 'Use one line of up to 128 characters.' })
    else if (wrong === 'unreachable')
      refuse({ text: 'The service cannot be reached. Check the connection and try again.' })
    else if (wrong === 'refused') refuse(link === undefined ? refusedToken : refusedLink)
  }

  async function signInAtProvider() {
    setBusy(true)
    const begun = await holder.calls.beginAtProvider()
    if (typeof begun === 'object') return location.assign(begun.value)
    setBusy(false)
    refuse({ text: providerProblems.unavailable })
  }

  function refuse(found: Problem) {
    setProblem(found)
    if (found.field) (found.field === 'token' ? token.current : name.current)?.focus()
  }

  const errorOf = (field: 'token' | 'name') => (problem?.field === field ? problem.text : undefined)
  return (
    <main class="sign-in">
      <form class="card sign-in-card" onSubmit={submit} noValidate autocomplete="off">
        <div class="brand">
          <Icon name="inbox" />
        </div>
        <h1>Sign in to the console</h1>
        {ended && !problem && link === undefined && <Notice tone={reasons[ended].tone}>{reasons[ended].text}</Notice>}
        {providerProblem && !problem && link === undefined && (
          <Notice tone="danger">{providerProblems[providerProblem] ?? providerProblems.refused}</Notice>
        )}
        {problem && !problem.field && <Notice tone="danger">{problem.text}</Notice>}
        {signedIn && link !== undefined && !problem && (
          <Notice tone="warning">
            You are signed in as {signedIn.displayName}. This link replaces that session in all tabs.
          </Notice>
        )}
        {link === undefined && (
          <>
            {hasProvider && (
              <Button kind="primary wide" disabled={isBusy} onClick={signInAtProvider}>
                Sign in with single sign-on
              </Button>
            )}
            <p class="hint">
              {hasProvider ? 'Or open' : 'Open'} the link that <code>npm start</code> printed.{' '}
              <code>npm run admin -- console-link</code> creates a new one.
            </p>
            <Field label="Or paste a token" hint="A workspace session token." error={errorOf('token')}>
              {(attributes) => (
                <textarea
                  {...attributes}
                  ref={token}
                  class="input mono secret-input"
                  rows={3}
                  spellcheck={false}
                  autocapitalize="off"
                  onKeyDown={(event) => {
                    if (event.key === 'Enter') void submit(event)
                  }}
                />
              )}
            </Field>
          </>
        )}
        <Field label="Your name" hint="Visitors see this name with your replies." error={errorOf('name')}>
          {(attributes) => (
            <input
              {...attributes}
              ref={name}
              class="input"
              required
              maxLength={128}
              autocomplete="off"
              defaultValue={localStore.getItem(nameKey) ?? ''}
            />
          )}
        </Field>
        <Button kind={hasProvider && link === undefined ? 'wide' : 'primary wide'} type="submit" disabled={isBusy}>
          Sign in
        </Button>
        {signedIn && link !== undefined && (
          <Button kind="wide" onClick={() => (holder.link.value = undefined)}>
            Stay signed in as {signedIn.displayName}
          </Button>
        )}
      </form>
    </main>
  )
}
