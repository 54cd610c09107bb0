import formsCss from './forms.css?inline'

export { showConsentCard } from './consent-card.ts'
export { createFormView } from './form-view.ts'
export { createRatingCard } from './rating-card.ts'

export const styles: string = formsCss
