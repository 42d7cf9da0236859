// Fetches everything from the server, and without one from the copies of an earlier visit.
addEventListener('install', () => skipWaiting());
addEventListener('activate', (event) => event.waitUntil(clients.claim()));
addEventListener('fetch', (event) => {
  if (event.request.method === 'GET') event.respondWith(answer(event.request));
});

async function answer(request) {
  const copies = await caches.open('site');
  let response;
  try {
    response = await fetch(request);
  } catch (error) {
    const copy = await copies.match(request);
    if (copy) return copy;
    throw error;
  }
  // Missing files are also remembered, because a model has optional files.
  if (response.ok || response.status === 404) await copies.put(request, response.clone());
  return response;
}
