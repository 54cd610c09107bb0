import type { RequestTexts } from '../texts.ts'

export const englishRequestTexts: RequestTexts = {
  requestOutcomes: {
    navigation: {
      declined: 'You stayed on this page.',
      completed: 'You went to the suggested page.',
      failed: 'The suggested page could not be opened.',
      expired: 'The suggestion of a page has expired.',
      cancelled: 'The suggestion of a page was taken back.',
    },
    screenshot: {
      uploaded: 'You sent a screenshot.',
      denied: 'You did not share a screenshot.',
      expired: 'The request for a screenshot has expired. Nothing was sent.',
      cancelled: 'The request for a screenshot was taken back. Nothing was sent.',
    },
  },
  opensPage: 'Opens in this tab.',
  leavesSite: (host) => `This takes you away from this site, to ${host}.`,
  goToPage: 'Go to page',
  noThanks: 'No thanks',
  opening: 'Opening the page…',
  screenshotExplained:
    'Only the team that answers you here will see it. You see the picture first; nothing is shared before you send it.',
  shareScreen: 'Share screen',
  chooseImage: 'Choose a picture',
  screenshotPreview: 'This is exactly what will be sent.',
  sendScreenshot: 'Send picture',
  discard: 'Discard',
  uploading: (percent) => `Sending the picture, ${percent} %`,
  stop: 'Stop',
  expiresIn: (time) => `Expires in ${time}`,
  requestProblems: {
    notStarted: 'Nothing was captured. Try again, or choose a picture.',
    notAnImage: 'Please choose a PNG, JPEG or WebP picture.',
    tooLarge: 'This picture is too large.',
    notAnswered: 'Your answer did not get through. Please try again.',
    notUploaded: 'The picture was not sent. Please try again.',
    expired: 'This request has expired.',
  },
}
