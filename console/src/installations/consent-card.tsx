import { useState } from 'preact/hooks'
import { CheckedForm } from '../ui/checked-form.tsx'
import { TextField, Toggle } from '../ui/field.tsx'
import { Card } from '../ui/page.tsx'
import { useUnsaved } from '../ui/unsaved.tsx'
import { type InstallationPart, useUpdate } from './update.ts'

/** Edits the consent that visitors must give before they write. */
export function ConsentCard(part: InstallationPart) {
  const { consent } = part.installation
  const [required, setRequired] = useState(consent?.required ?? false)
  const [policyUrl, setPolicyUrl] = useState(consent?.policyUrl ?? '')
  const [policyVersion, setPolicyVersion] = useState(consent?.policyVersion ?? '')
  const { busy, failure, save } = useUpdate(part)
  const policy = { required, policyUrl: policyUrl.trim(), policyVersion: policyVersion.trim() }
  const { form, onSaved } = useUnsaved(policy)
  const isNeeded = required || policyUrl.trim() !== '' || policyVersion.trim() !== ''
  const urlProblem = isNeeded && !isHttps(policyUrl) ? 'Enter an https address.' : undefined
  const versionProblem = isNeeded && policyVersion.trim() === '' ? 'Enter a version.' : undefined

  return (
    <Card title="Consent">
      <CheckedForm
        form={form}
        busy={busy}
        failure={failure}
        isValid={urlProblem === undefined && versionProblem === undefined}
        onSubmit={async () => {
          if (await save({ consent: policy }, 'Consent saved.')) onSaved()
        }}
      >
        {(isChecked) => (
          <>
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
              error={isChecked ? urlProblem : undefined}
              onChange={setPolicyUrl}
            />
            <TextField
              label="Policy version"
              hint="A new version asks every visitor again, also in open chats."
              maxLength={64}
              value={policyVersion}
              error={isChecked ? versionProblem : undefined}
              onChange={setPolicyVersion}
            />
          </>
        )}
      </CheckedForm>
    </Card>
  )
}

function isHttps(text: string): boolean {
  return URL.parse(text.trim())?.protocol === 'https:'
}
