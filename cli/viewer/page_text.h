// Pieces of the viewer's page, as embed.py writes them: around its style, words and data.
#pragma once

namespace ringlab::viewer {

extern const char* const kStyle;
extern const char* const kHead;    ///< before the style
extern const char* const kBody;    ///< between style and words
extern const char* const kMiddle;  ///< between words and data
extern const char* const kTail;    ///< behind the data: the script

}  // namespace ringlab::viewer
