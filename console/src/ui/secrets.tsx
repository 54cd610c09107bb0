import type { ComponentChildren } from 'preact'
import { useState } from 'preact/hooks'
import { Button } from './button.tsx'
import { Dialog, DialogButton } from './dialog.tsx'
import { Field } from './field.tsx'
import { Icon } from './icon.tsx'
import { Card } from './page.tsx'

/** A new secret and its name on screen. */
interface NewSecret {
  label: string
  secret: string
}

interface CopyOnceProps extends NewSecret {
  title: string
  advice: string
  onClose: () => void
}

/** Shows a secret once. Closes only after the operator confirms that it is stored. */
export function CopyOnce({ title, secret, label, advice, onClose }: CopyOnceProps) {
  const [isStored, setStored] = useState(false)
  return (
    <Dialog title={title} onClose={onClose} mustDecide>
      <div class="stack dialog-body">
        <p>{advice}</p>
        <CopyField label={label} text={secret} />
        <label class="line check">
          <input type="checkbox" checked={isStored} onChange={(event) => setStored(event.currentTarget.checked)} />I
          have stored it. It will not be shown again.
        </label>
        <div class="line dialog-actions">
          <Button kind="primary" disabled={!isStored} onClick={onClose}>
            Done
          </Button>
        </div>
      </div>
    </Dialog>
  )
}

/** A text that is selected when it gets the focus, with a button that copies it. */
export function CopyField({ label, hint, text }: { label: string; hint?: string; text: string }) {
  return (
    <Field label={label} hint={hint}>
      {(attributes) => (
        <div class="copy-row">
          <input
            {...attributes}
            class="input mono"
            readOnly
            value={text}
            onFocus={(event) => event.currentTarget.select()}
          />
          <CopyButton text={text} />
        </div>
      )}
    </Field>
  )
}

export function CopyButton({ text }: { text: string }) {
  const [status, setStatus] = useState('Copy')
  async function copy() {
    const done = await navigator.clipboard?.writeText(text).then(
      () => true,
      () => false,
    )
    setStatus(done ? 'Copied' : 'Select and copy manually')
  }
  return (
    <Button onClick={copy}>
      <Icon name="copy" />
      <span role="status">{status}</span>
    </Button>
  )
}

interface SecretsCardProps {
  /** Name of the secret, for example `identity secret`. */
  name: string
  /** Explains the effects of a rotation. */
  explanation: string
  advice: string
  rotate: () => Promise<NewSecret>
  /** Called when the operator has confirmed that the new secret is stored. */
  onRotated: () => void
  children: ComponentChildren
  /** Additional fields of the rotation dialog. */
  fields?: ComponentChildren
}

/** Card that shows secrets and rotates them. A new secret is shown only once. */
export function SecretsCard({ name, explanation, advice, rotate, onRotated, children, fields }: SecretsCardProps) {
  const [created, setCreated] = useState<NewSecret>()
  return (
    <Card
      title={`${name.charAt(0).toUpperCase()}${name.slice(1)}s`}
      actions={
        <DialogButton
          button="Rotate"
          title={`Rotate the ${name}?`}
          action="Create new secret"
          onConfirm={async () => setCreated(await rotate())}
        >
          <p>{explanation}</p>
          {fields}
        </DialogButton>
      }
    >
      {children}
      {created && (
        <CopyOnce
          {...created}
          title={`New ${name}`}
          advice={advice}
          onClose={() => {
            setCreated(undefined)
            onRotated()
          }}
        />
      )}
    </Card>
  )
}
