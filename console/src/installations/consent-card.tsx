import { useState } from 'preact/hooks'
import { Button } from '../ui/button.tsx'
import { TextField, Toggle } from '../ui/field.tsx'
import { FailureNotice } from '../ui/notice.tsx'
import { Card } from '../ui/page.tsx'
import { type InstallationPart, useUpdate } from './update.ts'

/** Edits the consent that visitors must give before they write. */
export function ConsentCard(part: InstallationPart) {
  const { consent } = part.installation
  const [required, setRequired] = useState(consent?.required ?? false)
  const [policyUrl, setPolicyUrl] = useState(consent?.policyUrl ?? '')
  const [policyVersion, setPolicyVersion] = useState(consent?.policyVersion ?? '')
  const [isChecked, setChecked] = useState(false)
  const { busy, failure, save } = useUpdate(part)
  const isNeeded = required || policyUrl.trim() !== '' || policyVersion.trim() !== ''
  const urlProblem = isNeeded && isChecked && !isHttps(policyUrl) ? 'Enter an https address.' : undefined
  const versionProblem = isNeeded && isChecked && policyVersion.trim() === '' ? 'Enter a version.' : undefined

  return (
    <Card title="Consent">
      <form
        class="stack"
        noValidate
        onSubmit={(event) => {
          event.preventDefault()
          setChecked(true)
          if (isNeeded && (!isHttps(policyUrl) || policyVersion.trim() === '')) return
          const policy = { required, policyUrl: policyUrl.trim(), policyVersion: policyVersion.trim() }
          void save({ consent: policy }, 'Consent saved.')
        }}
      >
        <Toggle
          label="Require consent"
          hint="Visitors must agree before they send a message or a form. They can always read."
          checked={required}
          disabled={busy}
          onChange={setRequired}
        />
        <TextField
          label="Policy URL"
          inputMode="url"
          maxLength={2048}
          value={policyUrl}
          error={urlProblem}
          onChange={setPolicyUrl}
        />
        <TextField
          label="Policy version"
          hint="A new version asks every visitor again, also in open chats."
          maxLength={64}
          value={policyVersion}
          error={versionProblem}
          onChange={setPolicyVersion}
        />
        <div class="line">
          <Button kind="primary" type="submit" disabled={busy}>
            Save consent
          </Button>
        </div>
        <FailureNotice failure={failure} />
      </form>
    </Card>
  )
}

function isHttps(text: string): boolean {
  return URL.parse(text.trim())?.protocol === 'https:'
}
