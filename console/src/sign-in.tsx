import { browserSupportsWebAuthn, startAuthentication } from '@simplewebauthn/browser'
import { useEffect, useRef, useState } from 'preact/hooks'
import type { ProviderProblem, SessionEnd, SessionHolder } from './session.ts'
import type { LinkDescription } from './session-calls.ts'
import { localStore } from './storages.ts'
import { Field } from './ui/form.tsx'
import { Button, Icon, Notice } from './ui/page.tsx'

const reasons: Record<SessionEnd, { tone: 'info' | 'warning'; text: string }> = {
  signed_out: { tone: 'info', text: 'You are signed out in all tabs.' },
  expired: { tone: 'warning', text: 'Your session has expired. Sign in again; your drafts are saved.' },
  rejected: { tone: 'warning', text: 'Your session has ended. Sign in again; your drafts are saved.' },
}

const nameKey = 'service.console.name'

interface Problem {
  /** Field with the problem. Undefined for a problem of the link. */
  field?: 'token' | 'name' | 'mail'
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
const refusedLink: Problem = { text: 'This link was used or has expired. Ask your administrator for a link.' }
const unreachable: Problem = { text: 'The service cannot be reached. Check the connection and try again.' }

/** Signs in with the link that was opened, or else in one of the other ways. */
export function SignIn({ holder }: { holder: SessionHolder }) {
  const [problem, setProblem] = useState<Problem>()
  const [isBusy, setBusy] = useState(false)
  const token = useRef<HTMLTextAreaElement>(null)
  const name = useRef<HTMLInputElement>(null)
  const link = holder.link.value
  const signedIn = holder.current.value
  const ended = holder.ended.value
  const workspace = useRef<HTMLInputElement>(null)
  const mail = useRef<HTMLInputElement>(null)
  const [ways, setWays] = useState({ provider: false, mail: false })
  const [opened, setOpened] = useState<LinkDescription>()
  const [mailed, setMailed] = useState(false)
  const providerProblem = holder.providerProblem.value
  useEffect(() => {
    void holder.calls.options().then((found) => typeof found === 'object' && setWays(found.value))
  }, [])
  useEffect(() => {
    document.title = 'Sign in · Console'
    setProblem(undefined)
    setOpened(undefined)
    if (link === undefined) return
    name.current?.focus()
    void holder.calls.describeLink(link).then((found) => {
      if (holder.link.peek() !== link) return
      if (typeof found === 'object') setOpened(found.value)
      else if (found === 'refused') setProblem(refusedLink)
    })
  }, [link])

  async function submit(event: Event) {
    event.preventDefault()
    const displayName = name.current?.value.trim() ?? ''
    const workspaceName = workspace.current?.value.trim()
    const pasted = token.current?.value.trim() ?? ''
    if (link === undefined && pasted === '')
      return refuse({ field: 'token', text: 'Paste your token, or choose another way to sign in.' })
    if (name.current && displayName === '')
      return refuse({ field: 'name', text: 'Enter the name that visitors will see.' })
    if (name.current) localStore.setItem(nameKey, displayName)
    const names = { displayName, ...(workspaceName && { workspaceName }) }
    await attempt(async () => {
      const wrong = await holder.signIn(link === undefined ? { token: pasted } : { link }, names)
      if (wrong === 'invalid') return { field: 'name', text: 'Use one line of up to 128 characters.' }
      return wrong === 'refused' ? (link === undefined ? refusedToken : refusedLink) : wrong && unreachable
    })
  }

  const signInAtProvider = () =>
    attempt(async () => {
      const begun = await holder.calls.beginAtProvider()
      if (typeof begun !== 'object') return { text: providerProblems.unavailable }
      location.assign(begun.value)
    })

  const signInWithPasskey = () =>
    attempt(async () => {
      const begun = await holder.calls.beginPasskey()
      if (typeof begun !== 'object') return unreachable
      const response = await startAuthentication({ optionsJSON: begun.value as never }).catch(() => undefined)
      if (!response) return { text: 'No passkey was used. Try again, or choose another way.' }
      const wrong = await holder.signInWithPasskey(response)
      if (wrong === 'unreachable') return unreachable
      return wrong && { text: 'This passkey is not accepted. Ask your administrator for a link.' }
    })

  const mailLink = () =>
    attempt(async () => {
      const address = mail.current!.value.trim()
      if (!address.includes('@')) return { field: 'mail', text: 'Enter your mail address.' }
      if (typeof (await holder.calls.mailLink(address)) !== 'object') return unreachable
      setMailed(true)
    })

  async function attempt(call: () => Promise<Problem | undefined>) {
    setBusy(true)
    setProblem(undefined)
    const found = await call()
    setBusy(false)
    if (found) refuse(found)
  }

  function refuse(found: Problem) {
    setProblem(found)
    const fields = { token, name, mail }
    if (found.field) fields[found.field].current?.focus()
  }

  const needsName = link === undefined || opened?.name === undefined
  const errorOf = (field: 'token' | 'name' | 'mail') => (problem?.field === field ? problem.text : undefined)
  return (
    <main class="sign-in">
      <form class="card sign-in-card" onSubmit={submit} noValidate autocomplete="off">
        <div class="brand">
          <Icon name="inbox" />
        </div>
        <h1>{opened?.invitation ? `Welcome to ${opened.workspaceName}` : 'Sign in to the console'}</h1>
        {opened?.name !== undefined && (
          <p>
            This link signs you in as <strong dir="auto">{opened.name}</strong> to {opened.workspaceName}.
          </p>
        )}
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
            {browserSupportsWebAuthn() && (
              <Button kind="primary wide" autofocus disabled={isBusy} onClick={signInWithPasskey}>
                Use a passkey
              </Button>
            )}
            {ways.provider && (
              <Button kind="wide" disabled={isBusy} onClick={signInAtProvider}>
                Sign in with single sign-on
              </Button>
            )}
            {ways.mail &&
              (mailed ? (
                <Notice tone="success">If an account has this address, a link is on its way. It works once.</Notice>
              ) : (
                <Field label="Mail address" error={errorOf('mail')}>
                  {(attributes) => (
                    <div class="copy-row">
                      <input
                        {...attributes}
                        ref={mail}
                        class="input"
                        type="email"
                        autocomplete="email"
                        maxLength={254}
                        onKeyDown={(event) => {
                          if (event.key !== 'Enter') return
                          event.preventDefault()
                          void mailLink()
                        }}
                      />
                      <Button disabled={isBusy} onClick={mailLink}>
                        Mail me a link
                      </Button>
                    </div>
                  )}
                </Field>
              ))}
            <p class="hint">No way to sign in? Ask your administrator for a link.</p>
            <Field label="Or paste a token" hint="For programs and administrators." error={errorOf('token')}>
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
        {opened?.firstOwner && (
          <Field label="Name of your workspace" hint="For example the name of your shop.">
            {(attributes) => (
              <input
                {...attributes}
                ref={workspace}
                class="input"
                maxLength={128}
                defaultValue={opened.workspaceName}
              />
            )}
          </Field>
        )}
        {needsName && (
          <Field label="Your name" hint="Visitors see this name with your replies." error={errorOf('name')}>
            {(attributes) => (
              <input
                {...attributes}
                ref={name}
                class="input"
                required
                maxLength={128}
                autocomplete="name"
                defaultValue={localStore.getItem(nameKey) ?? ''}
              />
            )}
          </Field>
        )}
        <Button kind={link === undefined ? 'wide' : 'primary wide'} type="submit" disabled={isBusy}>
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
