/* How alike sentences are: cc sentence_similarity.c $(pkg-config --cflags --libs attn_c) && ./a.out FOLDER SENTENCE SENTENCE ... */
#include <attn/c.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void check(attn_status status, attn_error** error) {
  if (status == ATTN_OK) return;
  fprintf(stderr, "%s: %s\n", attn_status_name(status), attn_error_message(*error));
  attn_error_free(*error);
  exit(1);
}

int main(int argc, char** argv) {
  if (argc < 4) {
    fprintf(stderr, "usage: %s FOLDER SENTENCE SENTENCE ...\n", argv[0]);
    return 2;
  }
  attn_error* error = NULL;
  attn_text_model* model = NULL;
  check(attn_text_model_load(argv[1], ATTN_WEIGHTS_AS_STORED, &model, &error), &error);

  const size_t count = (size_t)argc - 2;
  attn_text* texts = malloc(count * sizeof *texts);
  if (texts == NULL) return 1;
  for (size_t i = 0; i < count; ++i) {
    texts[i].data = argv[i + 2];
    texts[i].size = strlen(argv[i + 2]);
  }
  attn_embed_options options;
  attn_embed_options_init(&options);
  options.normalize = 1;
  attn_tensors* results = NULL;
  check(attn_text_model_embed(model, texts, count, &options, &results, &error), &error);

  attn_tensor embeddings; /* (N,E), each row of length 1 */
  attn_tensors_get(results, "embeddings", &embeddings);
  const float* rows = embeddings.data;
  const int64_t width = embeddings.dims[1];
  for (size_t i = 1; i < count; ++i) {
    double cosine = 0;
    for (int64_t j = 0; j < width; ++j) cosine += rows[j] * rows[(int64_t)i * width + j];
    printf("%.3f  %s\n", cosine, argv[i + 2]);
  }
  attn_tensors_free(results);
  attn_text_model_free(model);
  free(texts);
  return 0;
}
